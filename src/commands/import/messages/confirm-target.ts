// Asks the user to confirm the project before something is done to it.

import { ask, canAsk } from '#commands/client/prompt.ts'
import { refuse } from '#commands/refuse.ts'
import { printable } from '#core/printable.ts'

export interface Confirmation {
  readonly what: string
  readonly scripted: string
  /** Lines to print before the question. */
  readonly facts?: readonly string[]
  /** Why the question is asked, if that is not obvious. */
  readonly reason?: string
  /** The option that gives the name in a script; `--project` unless given. */
  readonly option?: string
  /** The role of the project; `target` unless given. */
  readonly whose?: string
}

/**
 * Asks the user to type the name of the project, unless an option gives it.
 * @param name of the target project, or its address where the name is not known.
 * @param given the value of the option that gives the name.
 * @param what is about to be done, such as `approve`.
 * @param scripted the command without that option, for scripts.
 */
export async function confirmTarget(
  name: string,
  given: string | undefined,
  { what, scripted, facts = [], reason, option = '--project', whose = 'target' }: Confirmation,
): Promise<void> {
  if (given !== undefined) {
    if (given !== name)
      refuse(printable(`${option} is ${JSON.stringify(given)}, but the ${whose} is ${JSON.stringify(name)}`))
    return
  }
  const inScript = `confirm the project: ${scripted} ${option} ${JSON.stringify(name)}`
  if (!canAsk()) refuse(printable(reason === undefined ? inScript : `${reason} C${inScript.slice(1)}`))
  for (const fact of reason === undefined ? facts : [reason, ...facts]) process.stdout.write(`${printable(fact)}\n`)
  const typed = await ask(`Type the name of the ${whose} to ${what} (${name})`)
  if (typed !== name) refuse('the name does not match; nothing was changed')
}
