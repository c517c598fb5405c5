"""Reading of users' files and quantities, with messages about mistakes."""
