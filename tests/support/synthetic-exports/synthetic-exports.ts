// Writes an export of any source and size, in the shape of the source's own exports.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { amplitude } from './amplitude.ts'
import { ga4 } from './ga4.ts'
import { generic } from './generic.ts'
import { type HappeningOptions, happenings } from './happenings.ts'
import { heap } from './heap.ts'
import { matomo } from './matomo.ts'
import { mixpanel } from './mixpanel.ts'
import { pendo } from './pendo.ts'
import { plausible } from './plausible.ts'
import { posthog } from './posthog.ts'
import { segment } from './segment.ts'
import { statsig } from './statsig.ts'
import type { SyntheticSource } from './synthetic-source.ts'

export const syntheticSources: readonly SyntheticSource[] = [
  ...[posthog, mixpanel, amplitude, segment, heap, ga4],
  ...[matomo, plausible, generic, pendo, statsig],
]

/** Even small exports have a part of each shape; large ones have many files, like those of real tools. */
const partsMin = 4
const partRecordsMax = 25_000

/**
 * Writes the export into the folder `raw`, and next to it what `pennon import plan` needs to read it.
 * @returns the arguments of the plan: the folder of the export and the options.
 */
export async function writeSyntheticExport(
  source: SyntheticSource,
  folder: string,
  { count, seed }: HappeningOptions,
): Promise<readonly string[]> {
  const raw = join(folder, 'raw')
  mkdirSync(raw, { recursive: true })
  const partCount = Math.max(partsMin, Math.ceil(count / partRecordsMax))
  const perPart = Math.ceil(count / partCount)
  const all = happenings({ count, seed })
  for (let part = 0; part < partCount; part++) {
    const file = source.open({ folder: raw, part, seed })
    for (let left = Math.min(perPart, count - part * perPart); left > 0; left--) file.add(all.next().value!)
    await file.end()
  }
  return [raw, '--source', source.name, ...settingsOf(source, folder)]
}

function settingsOf({ config, mapping }: SyntheticSource, folder: string): string[] {
  return Object.entries({ config, mapping }).flatMap(([option, value]) => {
    if (value === undefined) return []
    const path = join(folder, `${option}.json`)
    writeFileSync(path, JSON.stringify(value))
    return [`--${option}`, path]
  })
}
