// What the import commands print and ask. Names and values of a source, or text of a service, must not control the terminal.

import { askQuestion } from '#commands/client/prompt.ts'
import { toPrintable, toPrintableName } from '#core/printable.ts'

export interface NextStep {
  /** The command to type; null if the next step is not a command: then `why` says what to do. */
  readonly command: string | null
  readonly why: string
  /** True if everything is done, so that the command only undoes it. */
  readonly isOnlyToUndo?: boolean
}

/**
 * A command that only undoes something is not printed after `Next:`, since people run what follows `Next:` without
 * thinking.
 */
export function formatNextStep({ command, why, isOnlyToUndo = false }: NextStep): string {
  if (isOnlyToUndo) return `Done. ${why}: ${command}`
  return command === null ? `Next: ${why}` : `Next: ${command} (${why})`
}

/** @returns the path, quoted for a shell if necessary. */
export function quotePath(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.map(toPrintable).join('\n')}\n`)
}

export function printLine(line: string): void {
  printLines([line])
}

/** Prints JSON on one line. JSON escapes only ASCII control characters; `printLines` escapes the others. */
export function printJson(value: unknown): void {
  printLines([JSON.stringify(value)])
}

/** Prints that nothing was found, on stderr if stdout holds only lines of JSON. */
export function printNothingFound(line: string, isJson: boolean): void {
  const stream = isJson ? process.stderr : process.stdout
  stream.write(`${toPrintable(line)}\n`)
}

/** Prints a text file with its control characters escaped, since a terminal would obey them. */
export function printText(text: string): void {
  process.stdout.write(text.split('\n').map(toPrintableName).join('\n'))
}

/**
 * Asks the user to type the name of the project before something is done to it.
 * @param name the name of the target project, or its address if the name is unknown.
 * @param what is about to be done, such as `publish the import`.
 * @param left what to print if the user stops here: the state of the import, and the next step.
 * @returns false for an empty answer.
 */
export function confirmTarget(name: string, what: string, left: readonly string[]): Promise<boolean> {
  return confirmByTyping(name, `Type the name of the target to ${what} (${name})`, left)
}

/** Asks until the user types a text, or nothing, which stops the command, and so does Ctrl-C. @param left see above. */
export async function confirmByTyping(text: string, request: string, left: readonly string[]): Promise<boolean> {
  for (;;) {
    const typed = await askQuestion(`${request}, or nothing to stop here`, '', left.join(' '))
    if (typed === text) return true
    if (typed === '') {
      printLines(left)
      return false
    }
    printLine(`That is not ${JSON.stringify(text)}.`)
  }
}
