// Which answers of a flag expose a person to a variant, and whether the variants got their expected shares.

import { readStoredFilters, type StoredFilters, UnreadableFilters } from '../flags/definitions/flag-filters.ts'
import { readConfigVersion } from '../flags/definitions/read-rules.ts'
import { isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '../json.ts'
import { computeChiSquareSurvival } from '../statistics/chi-square-survival.ts'

export interface ExpectedVariant {
  readonly variant: string
  /** The expected share of the persons exposed to any variant, from 0 to 1; null when the definition does not define it. */
  readonly expectedShare: number | null
}

/** The persons first exposed to a variant, per bucket. */
export interface VariantExposure extends ExpectedVariant {
  readonly firsts: readonly number[]
}

/** A test for a mismatch of the variants' shares: a small `pValue` means that persons were not split as defined. */
export interface ShareTest {
  readonly chiSquare: number
  readonly degreesOfFreedom: number
  readonly pValue: number
}

/**
 * The variants of the flag as it is now. A flag without variants has the answers `true` and `false`: its conditions decide
 * how many subjects get each answer, so no share is expected. No share of persons is expected either when whole groups get
 * a variant.
 */
export function findExpectedVariants(filters: JsonObject): readonly ExpectedVariant[] {
  if (readConfigVersion(filters) === 2) return listRuleVariants(filters) ?? trueAndFalse
  const read = readFiltersOrNull(filters)
  const variants = read?.variants ?? []
  if (read === null || variants.length === 0) return trueAndFalse
  const sum = variants.reduce((total, { rolloutPercentage }) => total + rolloutPercentage, 0)
  const isKnown = sum > 0 && !isForGroups(read)
  return variants.map(({ key, rolloutPercentage }) => ({
    variant: key,
    expectedShare: isKnown ? rolloutPercentage / sum : null,
  }))
}

const trueAndFalse = ['true', 'false'].map(variant => ({ variant, expectedShare: null }))

/**
 * The variants of all experiments among the flag's rules, each once. With several experiments no share is expected: which
 * subjects reach which experiment follows from their conditions. Null without an experiment.
 */
function listRuleVariants(filters: JsonObject): readonly ExpectedVariant[] | null {
  const experiments = pickObjects(filters.rules).filter(rule => rule.rule_type === 'experiment')
  const shares = new Map<string, number | null>()
  for (const { key, weight } of experiments.flatMap(({ variants }) => pickObjects(variants))) {
    const percentage = readJsonNumber(weight ?? null)
    const isKnown = experiments.length === 1 && percentage !== undefined
    if (typeof key === 'string') shares.set(key, isKnown ? percentage / 100 : null)
  }
  return shares.size === 0 ? null : Array.from(shares, ([variant, expectedShare]) => ({ variant, expectedShare }))
}

function pickObjects(list: JsonValue | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : []
}

function isForGroups({ groupTypeIndex, sets }: StoredFilters): boolean {
  return groupTypeIndex !== null || sets.some(set => typeof set.groupTypeIndex === 'number')
}

function readFiltersOrNull(filters: JsonObject): StoredFilters | null {
  try {
    return readStoredFilters(filters)
  } catch (cause) {
    if (cause instanceof UnreadableFilters) return null
    throw cause
  }
}

/** Below this expected count a chi-squared test is not meaningful, by the usual rule. */
const expectedCountMin = 5

/**
 * Pearson's chi-squared test of the persons of each variant against the expected shares. Variants with a share of 0 are
 * left out.
 * @returns null when fewer than two variants are expected, or fewer than five persons for one of them.
 */
export function testVariantShares(
  variants: readonly { readonly persons: number; readonly expectedShare: number | null }[],
): ShareTest | null {
  const expected = variants.filter(({ expectedShare }) => expectedShare !== null && expectedShare > 0)
  const total = expected.reduce((sum, { persons }) => sum + persons, 0)
  if (expected.length < 2) return null
  let chiSquare = 0
  for (const { persons, expectedShare } of expected) {
    const count = total * expectedShare!
    if (count < expectedCountMin) return null
    chiSquare += (persons - count) ** 2 / count
  }
  const degreesOfFreedom = expected.length - 1
  return { chiSquare, degreesOfFreedom, pValue: computeChiSquareSurvival(chiSquare, degreesOfFreedom) }
}
