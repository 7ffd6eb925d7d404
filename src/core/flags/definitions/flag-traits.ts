// The filters of a flag list that cannot be tested without the whole flag. Source: PostHog's list of feature flags.

import { type Author, isSameAuthor } from '../../author.ts'
import { getOwnValue, isJsonObject } from '../../json.ts'
import type { Flag } from './flag.ts'
import { readConfigVersion } from './read-rules.ts'

export const flagTypes = ['boolean', 'multivariant', 'experiment', 'remote_config'] as const

/** All of them must match. */
export interface FlagTraits {
  readonly type?: (typeof flagTypes)[number]
  /** Matches flags made by one of these authors. */
  readonly createdBy?: readonly Author[]
  readonly evaluationRuntime?: string
  readonly hasEvaluationContexts?: boolean
  /** The flag has at least one of these. */
  readonly tags?: readonly string[]
  /** The flag has none of these. */
  readonly excludedTags?: readonly string[]
  readonly excludedKeys?: readonly string[]
  /** The flag has as many variants as an experiment may have. */
  readonly isEligibleForExperiment?: boolean
}

export function matchesTraits(flag: Flag, traits: FlagTraits): boolean {
  const { type, createdBy, evaluationRuntime, hasEvaluationContexts, tags, isEligibleForExperiment } = traits
  return (
    (type === undefined || isOfType(flag, type)) &&
    (createdBy === undefined || createdBy.some(author => isSameAuthor(author, flag.createdBy))) &&
    (evaluationRuntime === undefined || flag.evaluationRuntime === evaluationRuntime) &&
    (hasEvaluationContexts === undefined || flag.evaluationContexts.length > 0 === hasEvaluationContexts) &&
    (tags === undefined || tags.some(tag => flag.tags.includes(tag))) &&
    !traits.excludedTags?.some(tag => flag.tags.includes(tag)) &&
    !traits.excludedKeys?.includes(flag.key) &&
    (isEligibleForExperiment === undefined || mayBackExperiment(flag) === isEligibleForExperiment)
  )
}

function isOfType(flag: Flag, type: (typeof flagTypes)[number]): boolean {
  switch (type) {
    case 'boolean':
      return !isMultivariant(flag.filters)
    case 'multivariant':
      return isMultivariant(flag.filters)
    case 'experiment':
      return flag.hasExperiment
    case 'remote_config':
      return flag.isRemoteConfiguration
    default:
      return type satisfies never
  }
}

/** Whether a flag has other values than true and false. */
function isMultivariant(filters: Flag['filters']): boolean {
  return readConfigVersion(filters) === 2
    ? getOwnValue(filters, 'return_type') !== 'boolean'
    : countVariants(filters) > 0
}

/** PostHog's own bound. */
const experimentVariantsMax = 20

function mayBackExperiment({ filters }: Flag): boolean {
  const count = countVariants(filters)
  return count >= 2 && count <= experimentVariantsMax
}

/** How many variants filters of version 1 define; 0 for a flag that is just on or off, and for a flag with rules. */
export function countVariants(filters: Flag['filters']): number {
  const multivariate = getOwnValue(filters, 'multivariate')
  const variants = isJsonObject(multivariate) ? getOwnValue(multivariate, 'variants') : undefined
  return Array.isArray(variants) ? variants.length : 0
}
