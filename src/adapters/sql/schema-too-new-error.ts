// What a migration refuses with; apart from the migrations, so that who only passes it on need not load them.

/** The state belongs to a newer version of Pennon; the message is for people, one line. */
export class SchemaTooNewError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SchemaTooNewError'
  }
}
