"""The event engine as it was at commit 28e5bf1aea5a3b4d751e287c582513ec76662884, frozen whole.

An oracle for every later engine: world, schedules, rounds, sessions, post, inboxes, agents, availability, traffic, the
ends of runs and the counting of charges are copies of what stood in the project at that commit, cut down to what small
protocols need (`protocols`). From the project it uses draws, clocks and the laws of single delays only, and these by
way of `tests.oracles.laws`, so that nothing in this folder has to change when something there gets another name.

Nothing here is ever renamed, adapted, tidied or mended; linters and type checkers skip it. Where a rule of the project
is to change on purpose, the README of the folder above says what to do.
"""
