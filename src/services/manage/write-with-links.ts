// Writes a definition that refers to others, checked against the definitions at the time of the write. If the project's
// definitions change in between, it is checked again. So when two writes would together close a cycle, or one refers to
// what the other deletes, the later one is refused.

import type { DefinitionLinks, DefinitionReference } from '#core/flags/definitions/definition-links.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import type { ReferringDefinition } from '#core/flags/definitions/validate-references.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { DefinitionLinkReader, LinkedWrite } from '#ports/state/definition-links.ts'
import { findReferenceIssues, type ReferenceReader } from './check-stored.ts'
import { serializeDefinitionWrite } from './definition-writes.ts'

/** Only writes of other fronts, and writes of flags that an experiment, survey or feature owns, can come in between. */
const attemptCountMax = 30

/**
 * @param write checks against the links and writes with the given options.
 * @throws PortError `conflict` when the definitions change faster than they can be checked.
 */
export function writeWithLinks<T, E>(
  store: DefinitionLinkReader,
  projectId: number,
  write: (links: DefinitionLinks, linked: LinkedWrite) => Promise<Result<T, E | 'definitions_changed'>>,
): Promise<Result<T, E>> {
  return serializeDefinitionWrite(store, projectId, () => writeChecked(store, projectId, write))
}

async function writeChecked<T, E>(
  store: DefinitionLinkReader,
  projectId: number,
  write: (links: DefinitionLinks, linked: LinkedWrite) => Promise<Result<T, E | 'definitions_changed'>>,
): Promise<Result<T, E>> {
  let typesAtFirst: DefinitionLinks['groupTypes'] | undefined
  for (let attempt = 1; attempt <= attemptCountMax; attempt++) {
    const links = await store.findLinks(projectId)
    typesAtFirst ??= links.groupTypes
    const groupTypes = [...findDeletedTypes(typesAtFirst, links.groupTypes), ...links.groupTypes]
    const result = await write({ ...links, groupTypes }, { linksRevision: links.revision })
    if (result.ok) return result
    if (result.error !== 'definitions_changed') return err(result.error as E)
  }
  throw new PortError('management-store', 'conflict', new Error('the definitions changed during every attempt'))
}

/** Types that were deleted in between: a new type with the same index is a different one. */
function findDeletedTypes(
  before: DefinitionLinks['groupTypes'],
  now: DefinitionLinks['groupTypes'],
): readonly DefinitionLinks['groupTypes'][number][] {
  return before
    .filter(type => !now.some(({ index, name }) => index === type.index && name === type.name))
    .map(type => ({ ...type, isBeingDeleted: true }))
}

export interface DefinitionWrite<W, E> {
  readonly projectId: number
  readonly self: ReferringDefinition
  /** Its new references; empty when they do not change, and then nothing is looked up. */
  readonly references: readonly DefinitionReference[]
  /** Issues of the definition itself. */
  readonly issues: readonly FlagIssue[]
  /** Writes it despite any issues, which are returned as `warnings`. */
  readonly skipValidation: boolean
  /**
   * Decides from the project's definitions at the time of the write: returns the refusal, or null to allow the write.
   */
  readonly refuse?: ((links: DefinitionLinks) => Promise<E | null>) | undefined
  readonly write: (linked: LinkedWrite) => Promise<Result<W, E | 'definitions_changed'>>
}

export interface CheckedWrite<W> {
  readonly written: W
  readonly warnings: readonly FlagIssue[]
}

export interface InvalidDefinition {
  readonly kind: 'invalid'
  readonly issues: readonly FlagIssue[]
}

/** Refuses as `invalid` when the definition itself or one of its references is wrong. @throws PortError `conflict` */
export async function writeDefinition<W, E>(
  store: ReferenceReader,
  definition: DefinitionWrite<W, E>,
): Promise<Result<CheckedWrite<W>, E | InvalidDefinition>> {
  const { self, references, issues, skipValidation, refuse } = definition
  if (issues.length > 0 && !skipValidation) return err({ kind: 'invalid', issues })
  if (references.length === 0 && refuse === undefined) {
    const written = await serializeDefinitionWrite(store, definition.projectId, () => definition.write({}))
    if (written.ok) return ok({ written: written.value, warnings: issues })
    if (written.error === 'definitions_changed') throw new Error('a write that relies on nothing was refused for it')
    return err(written.error as E)
  }
  return writeWithLinks<CheckedWrite<W>, E | InvalidDefinition>(store, definition.projectId, async (links, linked) => {
    const found = [...issues, ...(await findReferenceIssues(store, definition.projectId, self, references, links))]
    if (found.length > 0 && !skipValidation) return err({ kind: 'invalid', issues: found })
    const refused = (await refuse?.(links)) ?? null
    if (refused !== null) return err(refused)
    const written = await definition.write(skipValidation ? {} : linked)
    return written.ok ? ok({ written: written.value, warnings: found }) : written
  })
}
