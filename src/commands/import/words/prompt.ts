// Questions to a person at a terminal. Ctrl-C and Ctrl-D at a question end the command, leave the terminal as it was, and
// change nothing.

import { createInterface } from 'node:readline/promises'
import { refuse } from '#commands/refuse.ts'
import { printable } from '#core/printable.ts'

/** Who answers questions, so that a test can. */
export interface Person {
  canAsk(): boolean
  /** @returns the answer without blanks around it; the default for an empty one. */
  ask(question: string, byDefault?: string): Promise<string>
  tell(line: string): void
}

/** Whether somebody is there to answer. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true
}

/** @returns the answer without blanks around it; the default for an empty one. */
export async function ask(question: string, byDefault = ''): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const stop = new AbortController()
  const abort = () => stop.abort()
  terminal.once('SIGINT', abort)
  terminal.once('close', abort)
  try {
    const shown = byDefault === '' ? '' : ` [${byDefault}]`
    const answer = (await terminal.question(printable(`${question}${shown}: `), { signal: stop.signal })).trim()
    return answer === '' ? byDefault : answer
  } catch (error) {
    if (!stop.signal.aborted) throw error
    terminal.close()
    process.stderr.write('\npennon: stopped; nothing was changed.\n')
    process.exit(130)
  } finally {
    terminal.off('close', abort)
    terminal.close()
  }
}

export const personAtTerminal: Person = {
  canAsk,
  ask,
  tell: line => void process.stdout.write(`${printable(line)}\n`),
}

export interface Confirmation {
  readonly what: string
  readonly scripted: string
  /** What to know before. */
  readonly facts?: readonly string[]
  /** Why it is asked at all, where that is not plain. */
  readonly why?: string
  /** Says the name in a script; `--project` unless given. */
  readonly option?: string
  /** What the project is to the import; its `target` unless given. */
  readonly whose?: string
}

/**
 * Lets somebody say which project they mean, by typing its name or with an option.
 * @param name of the target project, or its address where the name is not known.
 * @param given that option. @param what is about to be done, such as `approve`. @param scripted how a script says it.
 */
export async function confirmTarget(
  name: string,
  given: string | undefined,
  { what, scripted, facts = [], why, option = '--project', whose = 'target' }: Confirmation,
): Promise<void> {
  if (given !== undefined) {
    if (given !== name)
      refuse(printable(`${option} is ${JSON.stringify(given)}, and the ${whose} is ${JSON.stringify(name)}`))
    return
  }
  const inScript = `say which project it is for: ${scripted} ${option} ${JSON.stringify(name)}`
  if (!canAsk()) refuse(printable(why === undefined ? inScript : `${why} S${inScript.slice(1)}`))
  for (const fact of why === undefined ? facts : [why, ...facts]) process.stdout.write(`${printable(fact)}\n`)
  const typed = await ask(`Type the name of the ${whose} to ${what} (${name})`)
  if (typed !== name) refuse('that is another name; nothing was changed')
}
