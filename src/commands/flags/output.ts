import type { JsonValue } from '#core/json.ts'
import { toPrintable } from '#core/printable.ts'

/** Prints indented JSON, with control characters escaped. */
export function printJson(value: JsonValue): void {
  const lines = JSON.stringify(value, null, 2).split('\n')
  process.stdout.write(`${lines.map(toPrintable).join('\n')}\n`)
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(lines.map(line => `${line}\n`).join(''))
}
