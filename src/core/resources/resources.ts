// The resources that are written together with flags, by their names in scopes and in the activity log.

import type { ItemOf } from '../resource.ts'
import { earlyAccessFeatureResource } from './early-access-feature.ts'
import { experimentResource } from './experiment.ts'
import { surveyResource } from './survey.ts'

export const resources = {
  early_access_feature: earlyAccessFeatureResource,
  survey: surveyResource,
  experiment: experimentResource,
} as const

export type ResourceName = keyof typeof resources
export type Item<N extends ResourceName> = ItemOf<(typeof resources)[N]>
