// The names of a project's events and of their properties, and the property values, collected from what is stored.

export interface EventName {
  readonly name: string
  /** When the first event of this name was accepted, epoch ms. */
  readonly firstCapturedAtMs: number
  /** When the last event of this name happened, epoch ms. */
  readonly lastSeenMs: number
}

export interface PropertyName {
  readonly name: string
  /** Null when its values have several types, or are lists, objects or null. */
  readonly type: 'String' | 'Numeric' | 'Boolean' | 'DateTime' | null
  readonly isSeenOnEvents: boolean
}

export interface PropertyValues {
  readonly results: readonly { readonly valueJson: string; readonly count: number }[]
  /** How many different values there are; `results` may have fewer. */
  readonly valueCount: number
  /** Whether there are more events, persons or groups than were examined. */
  readonly isSample: boolean
}
