import { ask } from '#commands/client/prompt.ts'
import { refuse } from '#commands/refuse.ts'

/**
 * Asks the user to type the name of the project before something is done to it. Any other answer ends the process.
 * @param name of the target project, or its address where the name is not known.
 * @param what is about to be done, such as `publish the import`.
 * @returns false for an empty answer.
 */
export async function confirmTarget(name: string, what: string): Promise<boolean> {
  const typed = await ask(`Type the name of the target to ${what} (${name}), or nothing to stop here`)
  if (typed !== name && typed !== '') refuse('the name does not match; nothing was changed')
  return typed === name
}
