"""What the local backend keeps, and everything that is known of the database."""
