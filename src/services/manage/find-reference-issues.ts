// Checks of a flag or cohort write that need the stored definitions: whether what the flag or cohort refers to exists, and
// whether a filter leads to a flag whose value it could not test. Source: docs/wire/private-api.md 4.3.

import {
  type DefinitionLinks,
  type DefinitionReference,
  findReachedFlags,
} from '#core/flags/definitions/definition-links.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { findReferenceIssuesOf, type ReferringDefinition } from '#core/flags/definitions/validate-references.ts'
import type { DefinitionLinkReader, FlagStore } from '#ports/state/flag-store.ts'

/** Reads what a definition refers to. */
export type ReferenceReader = DefinitionLinkReader & Pick<FlagStore, 'listFlagsById'>

/** How many flags are in memory at a time: a single flag may have a megabyte. */
const readTogether = 20

/**
 * Finds references to something that does not exist or that refers back, and filters that lead to flags whose document has
 * another version than 1. Such a flag has a typed value, which no filter can test.
 * @param self the definition that has the references.
 */
export async function findReferenceIssues(
  management: Pick<ReferenceReader, 'listFlagsById'>,
  projectId: number,
  self: ReferringDefinition,
  references: readonly DefinitionReference[],
  links: DefinitionLinks,
): Promise<FlagIssue[]> {
  const pathOf = findReachedFlags(references, links)
  const ids = [...pathOf.keys()]
  const issues = findReferenceIssuesOf(self, references, links)
  for (let start = 0; start < ids.length; start += readTogether) {
    for (const flag of await management.listFlagsById(projectId, ids.slice(start, start + readTogether))) {
      if (readConfigVersion(flag.filters) === 1) continue
      // The path of the filter itself, not of its field that names the flag.
      const path = pathOf.get(flag.id)!.replace(/\.[^.]+$/, '')
      const message = `This refers to the flag "${flag.key}", a version 2 flag (with rules), which filters cannot test.`
      issues.push({ path, code: 'unsupported_dependency_config_version', message })
    }
  }
  return issues
}
