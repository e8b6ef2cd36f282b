"""What is known about asking people: who is compared with whom, whose answers count, and what the answers imply."""
