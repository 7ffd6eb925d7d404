// One request for flag values, as the wire hands it on: typed, aliases resolved, ids in their final text.

import type { JsonObject, PropertyBag } from '../../json.ts'
import type { FlagSelection } from './select-flags.ts'

export interface EvaluationRequest {
  readonly apiKey: string
  /** At most 200 characters; null when it was not sent, which only a request with `disableFlags` may do. */
  readonly distinctId: string | null
  readonly anonDistinctId: string | null
  readonly deviceId: string | null
  /** Group type name → key, as sent. */
  readonly groups: JsonObject
  readonly personProperties: PropertyBag
  /** Group type name → properties. */
  readonly groupProperties: JsonObject
  readonly selection: FlagSelection
  readonly disableFlags: boolean
  readonly onlyUseOverridePersonProperties: boolean
  /** What came of each condition set is wanted, and nothing is written. */
  readonly detailedAnalysis: boolean
  /** Whose location counts as a person property; '' for none, or when the caller switched it off. */
  readonly geoipAddress: string
}
