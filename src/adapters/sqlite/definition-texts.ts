// Definitions on their way out of a state thread: one JSON text for each flag, cohort and survey, so that the main thread
// reads thousands of them in turns, and a kept number literal slows down the reading of its own flag alone.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { parseJson } from '#core/json.ts'
import type { DefinitionChanges } from '#ports/definition-store.ts'

type Changed = DefinitionChanges['projects'][number]
type Lists = Pick<Changed, 'flags' | 'cohorts' | 'surveys'>
type Packed<T extends readonly unknown[]> = { readonly [I in keyof T]: string }
type PackedProject = Omit<Changed, keyof Lists> & { readonly [K in keyof Lists]: Packed<Lists[K]> }

export type PackedChanges = Omit<DefinitionChanges, 'projects'> & { readonly projects: readonly PackedProject[] }

/** The main thread's turn ends after so long. */
const sliceMs = 10

export function packDefinitions(changes: DefinitionChanges): PackedChanges {
  const pack = (items: readonly object[]) => items.map(item => JSON.stringify(item))
  return {
    ...changes,
    projects: changes.projects.map(project => ({
      ...project,
      flags: pack(project.flags),
      cohorts: pack(project.cohorts),
      surveys: pack(project.surveys),
    })),
  }
}

export async function unpackDefinitions(changes: PackedChanges): Promise<DefinitionChanges> {
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
  const projects: Changed[] = []
  for (const project of changes.projects)
    projects.push({
      ...project,
      flags: await unpack(project.flags),
      cohorts: await unpack(project.cohorts),
      surveys: await unpack(project.surveys),
    })
  return { ...changes, projects }
}
