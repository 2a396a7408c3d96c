"""What users may use in their own tests too; nothing of the product itself imports it."""
