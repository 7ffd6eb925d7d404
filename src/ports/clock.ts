/** Where the time comes from, epoch ms (UTC). Tests inject one they can move. */
export interface Clock {
  nowMs(): number
}
