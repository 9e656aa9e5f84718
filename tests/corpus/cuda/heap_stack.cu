/* SPDX-License-Identifier: MIT */
// Device-side malloc and free, new and delete, memset and memcpy, and alloca of a run-time size.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void lists(int *out, int n)
{
	struct Node {
		int value;
		Node *next;
	};
	Node *head = nullptr;
	for (int i = 0; i < n; ++i) {
		Node *node = static_cast<Node *>(malloc(sizeof(Node)));
		if (!node)
			break;
		node->value = i * i;
		node->next = head;
		head = node;
	}
	int sum = 0;
	while (head) {
		Node *next = head->next;
		sum += head->value;
		free(head);
		head = next;
	}
	double *block = new double[n];
	memset(block, 0, n * sizeof(double));
	block[n / 2] = sum;
	memcpy(out + 1, block, 64);
	out[0] = static_cast<int>(block[n - 1]);
	delete[] block;
}

extern "C" __global__ void stack_scratch(const char *in, char *out, int n)
{
	char *scratch = static_cast<char *>(alloca(n));
	for (int i = 0; i < n; ++i)
		scratch[n - 1 - i] = in[i];
	int fixed[24] = {5, 4, 3};
	fixed[n % 24] += scratch[n / 2];
	for (int i = 0; i < n; ++i)
		out[i] = scratch[i] + static_cast<char>(fixed[i % 24]);
}
