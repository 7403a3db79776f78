"""The rules of the world: transitions over tables, which every engine calls and none writes again."""
