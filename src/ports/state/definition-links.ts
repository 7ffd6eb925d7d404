// References between flags and cohorts. A write is first checked against these links (a missing cohort, a cycle), so
// the store must notice if they changed between the check and the write.

import type { DefinitionLinks } from '#core/flags/definitions/definition-links.ts'

/**
 * `linksRevision` is the revision from `findLinks`. If the project's definitions have changed since, the write is
 * refused as `definitions_changed`, and the caller checks again. So if two writes would close a cycle together, one of
 * them detects the other. Without `linksRevision` nothing is compared.
 */
export interface LinkedWrite {
  readonly linksRevision?: number
}

export interface DefinitionLinkReader {
  /**
   * The flags, cohorts and group types of a project that are not deleted, and what each refers to. At least as new as the
   * answer's `revision`.
   */
  findLinks(projectId: number): Promise<DefinitionLinks>
}
