// The error with which a start, a restore or another command refuses what another version of Pennon stored.

/** The last version with the schemas that the first migrations of this one replaced. */
const lastOfOldSchemas = '0.1.0'

/** This version cannot open the store; the message is one line for operators, what is wrong before the first `. `. */
export class UnfitSchemaError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UnfitSchemaError'
  }
}

/** The beginning of a message, the name of the store before it. */
export const isTooOld = `was written by Pennon ${lastOfOldSchemas} or earlier, and ${lastOfOldSchemas} is the last version that can open it`
