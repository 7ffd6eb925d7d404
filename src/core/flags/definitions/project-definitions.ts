// Everything about a project that an evaluation, or a client that evaluates by itself, needs and that changes rarely.

import type { EarlyAccessFeature } from '../../early-access/early-access-feature.ts'
import type { GroupType } from '../../groups/group.ts'
import type { Project } from '../../project.ts'
import type { Survey } from '../../surveys/survey.ts'
import type { Cohort } from './cohort.ts'
import type { Flag } from './flag.ts'

export interface ProjectDefinitions {
  readonly project: Project
  /** The instance's revision at the last change of any of this. */
  readonly revision: number
  /** Not deleted; active or not; by ascending id. */
  readonly flags: readonly Flag[]
  /** Not deleted; by ascending id. */
  readonly cohorts: readonly Cohort[]
  readonly groupTypes: readonly GroupType[]
  /** Oldest first. */
  readonly earlyAccessFeatures: readonly EarlyAccessFeature[]
  /** Not archived; oldest first. */
  readonly surveys: readonly Survey[]
  /** SHA-256, hex, of the secret keys that are valid: the primary one and, after a rotation, the backup. */
  readonly secretKeyHashes: readonly string[]
}

/** The definitions of a project that has none yet. */
export function emptyDefinitions(project: Project, revision: number): ProjectDefinitions {
  return {
    project,
    revision,
    flags: [],
    cohorts: [],
    groupTypes: [],
    earlyAccessFeatures: [],
    surveys: [],
    secretKeyHashes: [],
  }
}
