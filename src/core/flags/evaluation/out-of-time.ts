// Used in place of a failure: nothing is wrong, but the time slice is over and the same flag has to be evaluated again.

export const outOfTime = 'out_of_time'
