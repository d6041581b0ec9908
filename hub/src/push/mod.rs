//! Rooms, rings and viewers: frames to every open map.
