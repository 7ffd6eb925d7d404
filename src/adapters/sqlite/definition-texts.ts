// Encodes definitions that leave a state thread: one JSON text for each flag, cohort and survey, so that the main thread
// parses thousands of them in short time slices, and a kept number literal slows down the parsing of its own flag only.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { DefinitionDelta, ProjectDelta } from '#adapters/sql/definitions/unchanged-definitions.ts'
import { parseJson } from '#core/json.ts'

type Read = ProjectDelta['read']
type Lists = Pick<Read, 'flags' | 'cohorts' | 'surveys'>
type Packed<T extends readonly unknown[]> = { readonly [I in keyof T]: string }
type PackedProject = Omit<ProjectDelta, 'read'> & {
  readonly read: Omit<Read, keyof Lists> & { readonly [K in keyof Lists]: Packed<Lists[K]> }
}

export type EncodedDelta = Omit<DefinitionDelta, 'projects'> & { readonly projects: readonly PackedProject[] }

/** How long one time slice on the main thread may last. */
const sliceMs = 10

export function packDefinitions(changes: DefinitionDelta): EncodedDelta {
  const toJsonTexts = (items: readonly object[]) => items.map(item => JSON.stringify(item))
  return {
    ...changes,
    projects: changes.projects.map(({ read, gone }) => ({
      read: {
        ...read,
        flags: toJsonTexts(read.flags),
        cohorts: toJsonTexts(read.cohorts),
        surveys: toJsonTexts(read.surveys),
      },
      gone,
    })),
  }
}

export async function unpackDefinitions(changes: EncodedDelta): Promise<DefinitionDelta> {
  let sliceEndMs = performance.now() + sliceMs
  const unpack = async <T>(texts: readonly string[]): Promise<T[]> => {
    const items: T[] = []
    for (const text of texts) {
      items.push(parseJson(text) as unknown as T)
      if (performance.now() < sliceEndMs) continue
      await nextTurn()
      sliceEndMs = performance.now() + sliceMs
    }
    return items
  }
  const projects: ProjectDelta[] = []
  for (const { read, gone } of changes.projects) {
    const flags = await unpack<Read['flags'][number]>(read.flags)
    const cohorts = await unpack<Read['cohorts'][number]>(read.cohorts)
    const surveys = await unpack<Read['surveys'][number]>(read.surveys)
    projects.push({ read: { ...read, flags, cohorts, surveys }, gone })
  }
  return { ...changes, projects }
}
