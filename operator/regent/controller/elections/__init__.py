"""Elections of leaders on request and by the balance of leaders."""
