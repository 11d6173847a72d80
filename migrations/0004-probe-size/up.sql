-- A probe writes about as much as a usual append, so that its success says something about the next one.
ALTER TABLE probe ADD COLUMN filler BLOB;
