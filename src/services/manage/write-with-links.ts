// Writes a definition that refers to others, checked against the definitions at the time of the write. If the project's
// definitions change in between, the definition is checked again. So when two writes would together close a cycle, or one
// refers to what the other deletes, the later one is refused.

import type { DefinitionLinks, DefinitionReference } from '#core/flags/definitions/definition-links.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import type { ReferringDefinition } from '#core/flags/definitions/validate-references.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { DefinitionLinkReader, LinkedWrite } from '#ports/state/flag-store.ts'
import { writeOptimistically } from '../shared/write-optimistically.ts'
import { queueDefinitionWrite } from './definition-writes.ts'
import { findReferenceIssues, type ReferenceReader } from './find-reference-issues.ts'

/** Reads the project's links; a write that was checked against them names their revision. */
export type FindLinks = () => Promise<DefinitionLinks>

/**
 * Only writes of other fronts, and writes of flags that an experiment, survey or feature owns, can come between a check and
 * its write. @param write reads, checks and writes; runs again if the definitions changed in between.
 * @param isLate which other refusals of `write` mean that another writer came first.
 * @throws PortError `conflict` when the definitions change faster than they can be checked.
 */
export async function writeWithCheckedLinks<T, E>(
  store: DefinitionLinkReader,
  projectId: number,
  write: (findLinks: FindLinks) => Promise<Result<T, E | 'definitions_changed'>>,
  isLate: (refusal: E) => boolean = () => false,
): Promise<Result<T, E>> {
  let typesAtFirst: DefinitionLinks['groupTypes'] | undefined
  const findLinks = async () => {
    const links = await store.findLinks(projectId)
    typesAtFirst ??= links.groupTypes
    return { ...links, groupTypes: [...findDeletedTypes(typesAtFirst, links.groupTypes), ...links.groupTypes] }
  }
  const written = await queueDefinitionWrite(store, projectId, () =>
    writeOptimistically(
      () => write(findLinks),
      tried => !tried.ok && (tried.error === 'definitions_changed' || isLate(tried.error as E)),
    ),
  )
  if (!written.ok && written.error === 'definitions_changed')
    throw new PortError('management-store', 'conflict', new Error('the definitions changed during every attempt'))
  return written as Result<T, E>
}

/** Types that were deleted in between: a new type with the same index is a different type. */
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
  /** The definition's new references; empty when they do not change, and then nothing is looked up. */
  readonly references: readonly DefinitionReference[]
  /** Issues of the definition itself. */
  readonly issues: readonly FlagIssue[]
  /** Writes the definition despite any issues, which are returned as `warnings`. */
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
export function writeCheckedDefinition<W, E>(
  store: ReferenceReader,
  definition: DefinitionWrite<W, E>,
): Promise<Result<CheckedWrite<W>, E | InvalidDefinition>> {
  return writeWithCheckedLinks(store, definition.projectId, findLinks =>
    checkAndWriteDefinition(store, findLinks, definition),
  )
}

/** Like `writeCheckedDefinition`, but tries only once; called within `writeWithCheckedLinks`. */
export async function checkAndWriteDefinition<W, E>(
  store: ReferenceReader,
  findLinks: FindLinks,
  { projectId, self, references, issues, skipValidation, refuse, write }: DefinitionWrite<W, E>,
): Promise<Result<CheckedWrite<W>, E | InvalidDefinition | 'definitions_changed'>> {
  if (issues.length > 0 && !skipValidation) return err({ kind: 'invalid', issues })
  const links = references.length > 0 || refuse !== undefined ? await findLinks() : null
  const ofReferences = links === null ? [] : await findReferenceIssues(store, projectId, self, references, links)
  const found = [...issues, ...ofReferences]
  if (found.length > 0 && !skipValidation) return err({ kind: 'invalid', issues: found })
  const refused = (links && (await refuse?.(links))) ?? null
  if (refused !== null) return err(refused)
  const written = await write(links === null || skipValidation ? {} : { linksRevision: links.revision })
  return written.ok ? ok({ written: written.value, warnings: found }) : written
}
