// The error with which a migration refuses a state. In its own file, so that modules that only pass it on need not load
// the migrations.

/** The state belongs to a newer version of Pennon; the message is one line for operators. */
export class SchemaTooNewError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SchemaTooNewError'
  }
}
