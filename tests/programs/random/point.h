/* Messages from rank to rank. */

/* Starts the send of a mode. */
static void start_send(int mode, const void *buffer, int count, MPI_Datatype type, int to, int tag,
                       MPI_Request *request)
{
    switch (mode) {
    case 0:
        MPI_Isend(buffer, count, type, to, tag, comm, request);
        break;
    case 1:
        MPI_Issend(buffer, count, type, to, tag, comm, request);
        break;
    case 2:
        MPI_Ibsend(buffer, count, type, to, tag, comm, request);
        break;
    case 3:
        MPI_Irsend(buffer, count, type, to, tag, comm, request);
        break;
    default:
        (mode == 4 ? MPI_Send_init : mode == 5 ? MPI_Ssend_init : mode == 6 ? MPI_Bsend_init : MPI_Rsend_init)(
            buffer, count, type, to, tag, comm, request);
        MPI_Start(request);
    }
}

/* Each rank sends to the one `by` ranks on. */
static void shift(void)
{
    static unsigned char attached[ROOM + 1000];
    int by = draw(size), to = (rank + by) % size, from = (rank + size - by) % size, tag = draw(100);
    int count = between(1, 3), mode = draw(11), how = draw(6), got_count, sent_count, bytes;
    int source = draw(2) ? from : MPI_ANY_SOURCE, wanted = draw(2) ? tag : MPI_ANY_TAG, flag = 0;
    Type type = random_type(3, count, 12000);
    MPI_Datatype sent_type, got_type;
    MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
    MPI_Message message;
    MPI_Status status;
    void *from_here = sent.bytes + MIDDLE, *to_here = came.bytes + MIDDLE;
    as_items(&type, count, &sent_type, &sent_count);
    as_items(&type, count, &got_type, &got_count);
    if (draw(4) == 0)
        got_count += got_count / count;
    SEE(mode);
    SEE(how);
    fill(&sent, 0);
    blank(&came);
    MPI_Type_size(sent_type, &bytes);
    if (mode >= 8) {
        fill(&came, 1);
        if (mode == 8)
            MPI_Sendrecv(from_here, sent_count, sent_type, to, tag, to_here, got_count, got_type, source,
                         wanted, comm, &status);
        if (mode == 9)
            MPI_Sendrecv_replace(to_here, count, type.type, to, tag, source, wanted, comm, &status);
        if (mode == 10) {
            /* Twice, with a round in which both are there before either is asked about. */
            MPI_Isend(from_here, sent_count, sent_type, to, tag, comm, &send);
            MPI_Irecv(to_here, got_count, got_type, source, wanted, comm, &receive);
            MPI_Request both[2] = {send, receive};
            MPI_Status statuses[2];
            MPI_Waitall(2, both, statuses);
            SEE(both[0] == MPI_REQUEST_NULL && both[1] == MPI_REQUEST_NULL);
            status = statuses[1];
        }
        see_status(&status, mode == 9 ? type.type : got_type);
        SEE_ROOM(came);
        free_type(&type.type);
        return;
    }
    int is_ready = mode == 3 || mode == 7, is_buffered = mode == 2 || mode == 6;
    if (is_ready || how < 2) {
        how %= 2;
        if (how == 0)
            MPI_Irecv(to_here, got_count, got_type, source, wanted, comm, &receive);
        else {
            MPI_Recv_init(to_here, got_count, got_type, source, wanted, comm, &receive);
            MPI_Start(&receive);
        }
        if (is_ready)
            MPI_Barrier(comm);
    }
    if (is_buffered)
        MPI_Buffer_attach(attached, sizeof attached);
    start_send(mode, from_here, sent_count, sent_type, to, tag, &send);
    switch (how) {
    case 0:
        MPI_Wait(&receive, &status);
        break;
    case 1:
        while (!flag)
            MPI_Test(&receive, &flag, &status);
        MPI_Request_free(&receive);
        break;
    case 2:
        MPI_Recv(to_here, got_count, got_type, source, wanted, comm, &status);
        break;
    case 3:
        MPI_Probe(source, wanted, comm, &status);
        see_status(&status, got_type);
        MPI_Recv(to_here, got_count, got_type, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
        break;
    case 4:
        MPI_Mprobe(source, wanted, comm, &message, &status);
        see_status(&status, got_type);
        MPI_Mrecv(to_here, got_count, got_type, &message, &status);
        SEE(message == MPI_MESSAGE_NULL);
        break;
    default:
        while (!flag)
            MPI_Improbe(source, wanted, comm, &flag, &message, &status);
        MPI_Imrecv(to_here, got_count, got_type, &message, &receive);
        MPI_Wait(&receive, &status);
    }
    see_status(&status, got_type);
    SEE(receive == MPI_REQUEST_NULL);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    if (mode > 3)
        MPI_Request_free(&send);
    SEE(send == MPI_REQUEST_NULL);
    if (is_buffered) {
        void *detached;
        int length;
        MPI_Buffer_detach(&detached, &length);
        SEE(detached == attached);
        SEE(length);
    }
    SEE_ROOM(came);
    free_type(&type.type);
}

enum { MOST_MESSAGES = 64 };

/* All ranks send messages to one, which takes them in any order. */
static void funnel(void)
{
    int root = draw(1000) % size, each = between(1, 4), how = draw(4), long_one = draw(3) == 0;
    int length = long_one ? 6000 : between(0, 20), all = each * size;
    static int values[MOST_MESSAGES][6000];
    MPI_Request requests[MOST_MESSAGES], sends[4];
    MPI_Status statuses[MOST_MESSAGES];
    int at[MOST_MESSAGES], done, last[64];
    long sum = 0;
    /* Long messages take time, which calls that only look are too quick for. */
    if (long_one)
        how %= 2;
    SEE(how);
    fill(&sent, 0);
    for (int i = 0; i < each; i++)
        MPI_Isend(sent.bytes + i, length, MPI_INT, root, i, comm, &sends[i]);
    if (rank == root) {
        if (all > MOST_MESSAGES)
            MPI_Abort(MPI_COMM_WORLD, 3);
        memset(last, -1, sizeof last);
        memset(values, 0, sizeof values);
        for (int i = 0; i < all; i++)
            MPI_Irecv(values[i], length, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[i]);
        /* Receives match in the order in which they were posted, messages in that of their
         * sends. */
        for (int left = all; left > 0; left -= done) {
            done = 1;
            if (how == 0)
                MPI_Waitany(all, requests, &at[0], &statuses[0]);
            if (how == 1)
                MPI_Waitsome(all, requests, &done, at, statuses);
            if (how == 2)
                MPI_Testsome(all, requests, &done, at, statuses);
            if (how == 3)
                MPI_Testany(all, requests, &at[0], &done, &statuses[0]);
            for (int i = 0; i < done; i++) {
                int from = statuses[i].MPI_SOURCE, tag = statuses[i].MPI_TAG;
                uint64_t before = digest;
                digest = from * 100 + tag;
                see_bytes(values[at[i]], length * sizeof(int));
                sum += digest;
                digest = before;
            }
        }
        SEE(sum);
        MPI_Waitany(all, requests, &at[0], &statuses[0]);
        SEE(at[0] == MPI_UNDEFINED);
        SEE(statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[0].MPI_TAG == MPI_ANY_TAG);
        MPI_Waitsome(all, requests, &done, at, statuses);
        SEE(done == MPI_UNDEFINED);
    }
    MPI_Waitall(each, sends, MPI_STATUSES_IGNORE);
    /* From one sender, in order; no earlier receive may take these messages. */
    MPI_Barrier(comm);
    int number = -1;
    for (int i = 0; i < each; i++)
        MPI_Isend(&i, 0, MPI_INT, root, i, comm, &sends[i]);
    for (int from = 0; rank == root && from < size; from++)
        for (int i = 0; i < each; i++) {
            MPI_Recv(&number, 1, MPI_INT, from, MPI_ANY_TAG, comm, &statuses[0]);
            see_status(&statuses[0], MPI_INT);
        }
    MPI_Waitall(each, sends, MPI_STATUSES_IGNORE);
}

/* Messages around the ring through requests that are started again and again. */
static void persistent(void)
{
    int rounds = between(1, 4), length = draw(3) ? between(1, 50) : 5000, flag;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    fill(&sent, 0);
    blank(&came);
    MPI_Recv_init(came.bytes, length, MPI_INT, before, 5, comm, &requests[0]);
    MPI_Send_init(sent.bytes, length, MPI_INT, next, 5, comm, &requests[1]);
    MPI_Request_get_status(requests[0], &flag, &statuses[0]);
    SEE(flag);
    for (int i = 0; i < rounds; i++) {
        sent.bytes[0] = i;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        SEE(requests[0] != MPI_REQUEST_NULL);
        see_status(&statuses[0], MPI_INT);
        SEE_ROOM(came);
    }
    /* Of requests that are not active, the status is empty. */
    MPI_Wait(&requests[0], &statuses[0]);
    see_status(&statuses[0], MPI_INT);
    MPI_Test(&requests[1], &flag, &statuses[1]);
    SEE(flag);
    see_status(&statuses[1], MPI_INT);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    SEE(requests[1] == MPI_REQUEST_NULL);
}

/* A message that is longer than the receiver has room for. */
static void truncate_message(void)
{
    int length = draw(2) ? between(2, 20) : 7000, room = length / 2, code, class;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request request;
    MPI_Status status;
    fill(&sent, 0);
    blank(&came);
    MPI_Isend(sent.bytes, length, MPI_INT, next, 0, comm, &request);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Recv(came.bytes, room, MPI_INT, before, 0, comm, &status);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Error_class(code, &class);
    SEE(class == MPI_ERR_TRUNCATE);
    see_memory("behind", came.bytes + room * sizeof(int), 1000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Messages of nothing, to nowhere, and none at all. */
static void send_nothing(void)
{
    int value = 7, flag;
    MPI_Request request;
    MPI_Status status;
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 3, comm);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 3, comm, &status);
    see_status(&status, MPI_INT);
    MPI_Probe(MPI_PROC_NULL, 3, comm, &status);
    see_status(&status, MPI_INT);
    MPI_Message message;
    MPI_Mprobe(MPI_PROC_NULL, 3, comm, &message, &status);
    SEE(message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
    see_status(&status, MPI_INT);
    MPI_Iprobe(MPI_ANY_SOURCE, 99, comm, &flag, &status);
    SEE(flag);
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 98, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    SEE(flag);
    SEE(value);
    MPI_Sendrecv(NULL, 0, MPI_INT, (rank + 1) % size, 1, NULL, 0, MPI_DOUBLE, MPI_ANY_SOURCE, 1, comm, &status);
    see_status(&status, MPI_DOUBLE);
    request = MPI_REQUEST_NULL;
    MPI_Wait(&request, &status);
    see_status(&status, MPI_INT);
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    SEE(flag);
}
