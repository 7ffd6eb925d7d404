// Clock and limit of open files, for commands that start a part of an instance.

export { systemClock } from '#adapters/system/clock.ts'
export { readOpenFilesMax } from '#adapters/system/open-files.ts'
