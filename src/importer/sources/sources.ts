// Every source by its name. A new one is a file beside this, and a row here.

import type { ImportSource } from '../records/import-source.ts'
import { amplitude } from './amplitude.ts'
import { ga4 } from './ga4.ts'
import { generic } from './generic.ts'
import { heap } from './heap.ts'
import { matomo } from './matomo.ts'
import { mixpanel } from './mixpanel.ts'
import { pendo } from './pendo.ts'
import { plausible } from './plausible.ts'
import { posthog } from './posthog.ts'
import { segment } from './segment.ts'
import { statsig } from './statsig.ts'

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

export const sourceNames: readonly string[] = sources.map(({ name }) => name)

/** Products that write the same records as another: their events are the same, whoever kept them. */
const otherNames: ReadonlyMap<string, string> = new Map([['rudderstack', 'segment']])

/** @returns null when there is no source of this name. */
export function findSource(name: string): ImportSource | null {
  return sources.find(source => source.name === (otherNames.get(name) ?? name)) ?? null
}

/** All of them, in the order in which help lists them. */
export function allSources(): readonly ImportSource[] {
  return sources
}
