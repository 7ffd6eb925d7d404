// In the place of a failure: nothing is wrong, but the slice is over and the same flag has to be asked again.

export const outOfTime = 'out_of_time'
