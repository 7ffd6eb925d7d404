// One request for flag values, as the parsers in `wire/flags` pass it on: typed, aliases resolved, ids in their final form.

import type { JsonObject, PropertyBag } from '../../json.ts'
import type { FlagSelection } from './select-flags.ts'

export interface EvaluationRequest {
  readonly apiKey: string
  /** At most 200 characters; null when not sent, which is allowed only with `disableFlags`. */
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
  /** Whether the answer reports on each condition set; if so, nothing is written. */
  readonly detailedAnalysis: boolean
  /** The address whose location becomes person properties; '' when there is none or the caller disabled the look-up. */
  readonly geoipAddress: string
  /**
   * What a page without cookies sends about its visitor; null for every request whose distinct id is not the sentinel.
   */
  readonly cookieless: CookielessRequest | null
}

/** Source: docs/wire/evaluation.md 1.7. */
export interface CookielessRequest {
  /** The visitor's time zone; null when not sent. */
  readonly timezone: string | null
  /** '' when not sent. */
  readonly extra: string
}

/**
 * What identifies a visitor without cookies, as shown by the connection and the headers; '' where they do not show it.
 */
export interface RequestVisitor {
  readonly address: string
  /** The page's host, or the page's address. */
  readonly host: string
  readonly userAgent: string
}
