import { isObject, type JobFolder } from '#importer/job/job-folder.ts'

/** @throws JobStopped for a line that is no object, with what to do about its file. @param name of the file in the folder. */
export function parsedLine<T extends object>(folder: JobFolder, name: string, text: string): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Where the line stops to be JSON helps nobody: the file is made anew as a whole.
    throw folder.damaged(name)
  }
  if (!isObject(value)) throw folder.damaged(name)
  return value as T
}
