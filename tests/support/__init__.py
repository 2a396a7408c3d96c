"""What the tests share: real servers, real nodes, faults, and a judge; no test is in here."""
