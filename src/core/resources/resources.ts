// The resources whose items `ResourceStore` writes, by their names in scopes and in the activity log.

import type { Field, ItemOf, Resource } from '../resource.ts'
import { earlyAccessFeatureResource } from './early-access-feature.ts'
import { experimentResource } from './experiment.ts'
import { surveyResource } from './survey.ts'

export const resources = {
  early_access_feature: earlyAccessFeatureResource,
  survey: surveyResource,
  experiment: experimentResource,
} as const satisfies Readonly<Record<string, Resource & { readonly fields: CommonFields }>>

/** The activity log names an item by its `name` field, which may be called differently in the private API. */
interface CommonFields {
  readonly id: Field<string> | Field<number>
  readonly projectId: Field<number>
  readonly name: Field<string>
}

export type ResourceName = keyof typeof resources
export type Item<N extends ResourceName> = ItemOf<(typeof resources)[N]>
