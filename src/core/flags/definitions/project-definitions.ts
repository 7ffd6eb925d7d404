// Everything about a project that changes rarely and that an evaluation, or a client that evaluates locally, needs.

import type { GroupType } from '../../groups/group.ts'
import type { Project } from '../../project.ts'
import type { EarlyAccessFeature } from '../../resources/early-access-feature.ts'
import type { Survey } from '../../resources/survey.ts'
import type { Cohort } from './cohort.ts'
import type { Flag } from './flag.ts'

export interface ProjectDefinitions {
  readonly project: Project
  /** The instance's revision at the last change to any of these definitions. */
  readonly revision: number
  /** Without deleted flags, but with inactive ones; by ascending id. */
  readonly flags: readonly Flag[]
  /** Without deleted ones; by ascending id. */
  readonly cohorts: readonly Cohort[]
  readonly groupTypes: readonly GroupType[]
  /** Oldest first. */
  readonly earlyAccessFeatures: readonly EarlyAccessFeature[]
  /** Without archived ones; oldest first. */
  readonly surveys: readonly Survey[]
  /** SHA-256 (hex) of the valid secret keys: the primary one and, after a rotation, the backup. */
  readonly secretKeyHashes: readonly string[]
}
