//! Files and folders by one name each, on this machine or in an object store.
