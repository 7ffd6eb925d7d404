// Writes a definition that refers to others, checked against what there is at the moment of the write: whoever changes the
// project's definitions in between makes it be checked again.

import type { DefinitionLinks } from '#core/cohorts/definition-links.ts'
import type { Result } from '#core/result.ts'
import type { CohortStore, LinkedWrite } from '#ports/cohort-store.ts'
import { PortError } from '#ports/port-error.ts'

/** Somebody who writes definitions so often is a script that can wait. */
const attemptCountMax = 10

/**
 * @param write checks against the links and writes with the given options.
 * @throws PortError `conflict` when the definitions change faster than they can be checked.
 */
export async function writeWithLinks<T, E>(
  store: Pick<CohortStore, 'findLinks'>,
  projectId: number,
  write: (links: DefinitionLinks, options: LinkedWrite) => Promise<Result<T, E | 'definitions_changed'>>,
): Promise<Result<T, E>> {
  for (let attempt = 1; attempt <= attemptCountMax; attempt++) {
    const links = await store.findLinks(projectId)
    const result = await write(links, { linksRevision: links.revision })
    if (result.ok) return result
    if (result.error !== 'definitions_changed') return { ok: false, error: result.error as E }
  }
  throw new PortError('management-store', 'conflict', new Error('the definitions keep changing'))
}
