import { type Config, readConfig } from '#config.ts'
import { toPrintable } from '#core/printable.ts'

/** Ends a command that cannot start or continue: exactly one line on stderr that says what to do, and exit code 2. */
export function refuse(message: string): never {
  process.stderr.write(`pennon: ${toPrintable(message.replaceAll('\n', ' '))}\n`)
  process.exit(2)
}

export function readConfigOrRefuse(environment: NodeJS.ProcessEnv = process.env): Config {
  const read = readConfig(environment)
  return read.ok ? read.value : refuse(read.error)
}
