// How often a flag was called, and whom it exposed to its variants, as JSON.

import Type, { type Static } from 'typebox'
import type { Buckets } from '#core/insights/buckets.ts'
import type { ShareTest, VariantExposure } from '#core/insights/exposure.ts'
import type { FlagUsage } from '#core/insights/flag-usage.ts'
import { formatInstant, instantSchema, nullable } from '../shapes.ts'

/** PostHog's names for all values that are not listed, and for a missing value. */
const otherValue = '$$_posthog_breakdown_other_$$'
const noValue = '$$_posthog_breakdown_null_$$'

export const bucketStartsSchema = Type.Array(Type.String(), {
  description: 'Start of each bucket, with the offset of the project’s time zone: 2026-03-29T00:00:00+01:00.',
})

export const flagUsageSchema = Type.Object({
  last_called_at: nullable(instantSchema),
  results: Type.Array(
    Type.Object({
      value: Type.String({
        description: `\`true\`, \`false\` or a variant. ${noValue}: calls without a value. ${otherValue}: all values except the 25 most frequent.`,
      }),
      calls: Type.Array(Type.Integer(), { description: 'Calls per bucket; duplicate events count once.' }),
      persons: Type.Array(Type.Integer(), { description: 'Distinct persons per bucket, as currently merged.' }),
      buckets: bucketStartsSchema,
    }),
  ),
})

/** @param lastCalledAtMs null when no live call is known. */
export function encodeFlagUsage(
  { values, rest }: FlagUsage,
  buckets: Buckets,
  timezone: string,
  lastCalledAtMs: number | null,
): Static<typeof flagUsageSchema> {
  const starts = formatBucketStarts(buckets, timezone)
  const lines = rest === null ? values : [...values, { ...rest, value: otherValue }]
  return {
    last_called_at: lastCalledAtMs === null ? null : formatInstant(lastCalledAtMs),
    results: lines.map(({ value, calls, persons }) => ({
      value: value === '' ? noValue : value,
      calls: [...calls],
      persons: [...persons],
      buckets: starts,
    })),
  }
}

/** @param timezone the IANA name that the buckets were made in. */
export function formatBucketStarts({ edges }: Buckets, timezone: string): string[] {
  return edges.slice(0, -1).map(ms => {
    const start = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone)
    return start.toString({ timeZoneName: 'never', smallestUnit: 'second' })
  })
}

export const flagExposureSchema = Type.Object({
  variants: Type.Array(
    Type.Object({
      variant: Type.String(),
      persons: Type.Integer({ description: 'Persons, as currently merged, exposed to this variant only.' }),
      expected_share: nullable(
        Type.Number({ description: 'Expected share, 0 to 1; null if the definition has none.' }),
      ),
    }),
  ),
  multiple: Type.Integer({ description: 'Persons exposed to several variants; they are not counted for any variant.' }),
  buckets: bucketStartsSchema,
  cumulative: Type.Record(Type.String(), Type.Array(Type.Integer()), {
    description: 'By variant: persons first exposed up to and including each bucket.',
  }),
  srm: nullable(
    Type.Object(
      { chi_square: Type.Number(), degrees_of_freedom: Type.Integer(), p_value: Type.Number() },
      { description: 'Sample ratio mismatch test; null unless at least two variants expect 5 or more persons.' },
    ),
  ),
})

/** @param timezone the IANA name that the buckets were made in. */
export function encodeFlagExposure(
  exposure: {
    readonly buckets: Buckets
    readonly variants: readonly VariantExposure[]
    readonly multiple: number
    readonly shareTest: ShareTest | null
  },
  timezone: string,
): Static<typeof flagExposureSchema> {
  const { buckets, variants, multiple, shareTest } = exposure
  const cumulative = variants.map(({ variant, firsts }) => {
    let persons = 0
    return { variant, line: firsts.map(count => (persons += count)) }
  })
  return {
    variants: variants.map(({ variant, expectedShare }, index) => ({
      variant,
      persons: cumulative[index]!.line.at(-1) ?? 0,
      expected_share: expectedShare,
    })),
    multiple,
    buckets: formatBucketStarts(buckets, timezone),
    cumulative: Object.fromEntries(cumulative.map(({ variant, line }) => [variant, line])),
    srm:
      shareTest === null
        ? null
        : {
            chi_square: shareTest.chiSquare,
            degrees_of_freedom: shareTest.degreesOfFreedom,
            p_value: shareTest.pValue,
          },
  }
}
