// What commands need of the machine itself when they start a part of an instance.

export { systemClock } from '#adapters/system/clock.ts'
export { readOpenFilesMax } from '#adapters/system/open-files.ts'
