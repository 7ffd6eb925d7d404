// Every source by its name. A new one is a file beside this, and a row here.

import type { ImportSource } from '../records/import-source.ts'
import { ga4 } from './ga4.ts'
import { generic } from './generic.ts'
import { heap } from './heap.ts'
import { mixpanel } from './mixpanel.ts'
import { pendo } from './pendo.ts'
import { posthog } from './posthog.ts'
import { statsig } from './statsig.ts'

const sources: readonly ImportSource[] = [ga4, heap, mixpanel, pendo, posthog, statsig, generic]

export const sourceNames: readonly string[] = sources.map(({ name }) => name)

/** @returns null when there is no source of this name. */
export function findSource(name: string): ImportSource | null {
  return sources.find(source => source.name === name) ?? null
}

/** All of them, in the order in which help lists them. */
export function allSources(): readonly ImportSource[] {
  return sources
}
