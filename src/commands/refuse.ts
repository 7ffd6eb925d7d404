import { printable } from '#core/printable.ts'

/** Ends a command that cannot start or continue: exactly one line on stderr that says what to do, and exit code 2. */
export function refuse(message: string): never {
  process.stderr.write(`pennon: ${printable(message.replaceAll('\n', ' '))}\n`)
  process.exit(2)
}
