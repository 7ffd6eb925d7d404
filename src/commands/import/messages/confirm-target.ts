// Asks the user to confirm the project before something is done to it.

import { ask, canAsk } from '#commands/client/prompt.ts'
import { refuse } from '#commands/refuse.ts'
import { printable } from '#core/printable.ts'

export interface Confirmation {
  readonly what: string
  readonly scripted: string
  /** Lines to print before the question. */
  readonly facts?: readonly string[]
}

/**
 * Asks the user to type the name of the project, unless `--project` gives it.
 * @param name of the target project, or its address where the name is not known.
 * @param given the value of that option.
 * @param what is about to be done, such as `approve`.
 * @param scripted the command without that option, for scripts.
 */
export async function confirmTarget(
  name: string,
  given: string | undefined,
  { what, scripted, facts = [] }: Confirmation,
): Promise<void> {
  if (given !== undefined) {
    if (given !== name)
      refuse(printable(`--project is ${JSON.stringify(given)}, but the target is ${JSON.stringify(name)}`))
    return
  }
  if (!canAsk()) refuse(printable(`confirm the project: ${scripted} --project ${JSON.stringify(name)}`))
  for (const fact of facts) process.stdout.write(`${printable(fact)}\n`)
  const typed = await ask(`Type the name of the target to ${what} (${name})`)
  if (typed !== name) refuse('the name does not match; nothing was changed')
}
