/** The source of the current time, in epoch ms (UTC). Tests inject a clock that they can move. */
export interface Clock {
  nowMs(): number
}
