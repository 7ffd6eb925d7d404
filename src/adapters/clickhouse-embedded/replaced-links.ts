// The engine keeps links to the folders of its tables, creates missing ones at each start, and does not start if a
// folder is in a link's place. A copy of the data folder that followed links (`cp -rL`) has such folders, each with the
// contents of the link's target.

import { existsSync, lstatSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { engineFolderOf } from './engine-endpoint.ts'

/** The message is a line for operators. */
export class ReplacedLinkError extends Error {}

/**
 * Removes each folder that stands in the place of a link, after finding all of its files in the link's target. Call it only
 * while no engine runs.
 * @returns the removed folders; empty if the engine's links are intact.
 * @throws ReplacedLinkError when such a folder has a file that the link's target lacks.
 */
export function removeFoldersReplacingLinks(dataFolder: string): readonly string[] {
  const store = join(engineFolderOf(dataFolder), 'store')
  const copies: { readonly place: string; readonly target: string }[] = []
  for (const definition of listDefinitions(join(store, 'metadata'))) {
    const database = basename(definition, '.sql')
    const tables = findTargetFolder(store, definition)
    if (tables === null) continue
    copies.push({ place: join(store, 'metadata', database), target: tables })
    for (const table of listDefinitions(tables)) {
      const target = findTargetFolder(store, table)
      if (target !== null) copies.push({ place: join(store, 'data', database, basename(table, '.sql')), target })
    }
  }
  const found = copies.filter(({ place }) => isFolder(place))
  for (const { place, target } of found) requireSameFiles(target, place)
  for (const { place } of found) rmSync(place, { recursive: true })
  return found.map(({ place }) => place)
}

function requireSameFiles(target: string, place: string): void {
  for (const path of listFilesBelow(place)) {
    const original = statSync(join(target, relative(place, path)), { throwIfNoEntry: false })
    if (original?.size !== statSync(path).size)
      throw new ReplacedLinkError(
        `${place} is a folder instead of a symbolic link of the event store, and ${relative(place, path)} in it is not in ${target}. Copy the data folder again with its links: cp -a.`,
      )
  }
}

/** @param folder contains the definitions as files `NAME.sql`. */
function listDefinitions(folder: string): string[] {
  return existsSync(folder)
    ? readdirSync(folder)
        .filter(name => name.endsWith('.sql'))
        .map(name => join(folder, name))
    : []
}

/** The folder that the definition of a database or table names; null when it names no existing folder. */
function findTargetFolder(store: string, definition: string): string | null {
  const [, uuid] = /^ATTACH \w+ \S+ UUID '([0-9a-f-]{36})'/.exec(readFileSync(definition, 'utf8')) ?? []
  const folder = uuid === undefined ? null : join(store, 'store', uuid.slice(0, 3), uuid)
  return folder !== null && existsSync(folder) ? folder : null
}

/** Whether the path itself is a folder; false for a link to a folder. */
function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

function listFilesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}
