// The names of a project's events and of their properties, collected from the events themselves.

export interface EventName {
  readonly name: string
  /** When the first of them was accepted, epoch ms. */
  readonly firstCapturedAtMs: number
  /** When the last of them happened, epoch ms. */
  readonly lastSeenMs: number
}

export interface PropertyName {
  readonly name: string
  /** Null when its values have several types, or are lists, objects or null. */
  readonly type: 'String' | 'Numeric' | 'Boolean' | 'DateTime' | null
  readonly isSeenOnEvents: boolean
}
