// All sources by name. To add one, add its folder here and a row to `sources`.

import { amplitude } from '#importer/sources/amplitude/amplitude.ts'
import { ga4 } from '#importer/sources/ga4/ga4.ts'
import { generic, pendo, statsig } from '#importer/sources/generic/generic.ts'
import { heap } from '#importer/sources/heap/heap.ts'
import { matomo } from '#importer/sources/matomo/matomo.ts'
import { mixpanel } from '#importer/sources/mixpanel/mixpanel.ts'
import { plausible } from '#importer/sources/plausible/plausible.ts'
import { segment } from '#importer/sources/segment/segment.ts'
import type { ImportSource } from '../records/import-source.ts'
import { posthog } from './posthog/posthog.ts'

const sources: readonly ImportSource[] = [
  amplitude,
  ga4,
  heap,
  matomo,
  mixpanel,
  pendo,
  plausible,
  posthog,
  segment,
  statsig,
  generic,
]

/** Products whose records have the format of another source. */
const otherNames: ReadonlyMap<string, string> = new Map([['rudderstack', 'segment']])

export const sourceNames: readonly string[] = [...sources.map(({ name }) => name), ...otherNames.keys()]

/** @returns null if there is no source with this name. */
export function findSource(name: string): ImportSource | null {
  return sources.find(source => source.name === (otherNames.get(name) ?? name)) ?? null
}

/** All sources, in the order in which help lists them. */
export function listSources(): readonly ImportSource[] {
  return sources
}
